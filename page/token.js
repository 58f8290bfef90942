/* The field for a token, on every page. */
import { service, setToken } from './api.js';
import { find } from './dom.js';

export function tokenView() {
  const box = find('#token'), input = box.querySelector('input'), summary = box.querySelector('summary');

  function show() {
    summary.dataset.set = String(Boolean(service.token));
    input.value = service.token;
  }

  box.querySelector('form').addEventListener('submit', (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    box.open = false;
    show();
  });
  box.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') {
      box.open = false;
      summary.focus();
    }
  });
  addEventListener('click', (event) => {
    if (box.open && !box.contains(event.target) && !event.target.closest('#problem'))
      box.open = false;
  });
  show();
}
