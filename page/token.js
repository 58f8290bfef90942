/* The field for a token, on every page. */
import { setToken, token } from './api.js';
import { find } from './dom.js';

export function tokenView() {
  const box = find('#token'), input = box.querySelector('input'), summary = box.querySelector('summary');

  function show() {
    summary.dataset.set = String(Boolean(token()));
    input.value = token();
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
