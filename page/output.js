/* The parameters that every filter takes, made from the catalogue, except for those that the page
 * draws. */
import { find, h, refill } from './dom.js';

const ELSEWHERE = new Set(['filters', 'chain', 'border', 'border_value', 'roi', 'regions', 'feather', 'invert', 'verify',
  'raw', 'alpha', 'deadline_ms']);
const FIRST = ['format', 'quality', 'channels'];

export function outputView(store) {
  const box = find('#output'), more = find('#more'), verify = find('#verify');

  const set = (name, text) => {
    const { [name]: _, ...rest } = store.state.common;
    store.set({ common: text ? { ...rest, [name]: text } : rest });
  };

  function field({ name, text, choices }) {
    const id = `c-${name}`, value = store.state.common[name] || '';
    const control = choices
      ? h('select', { id, 'aria-describedby': `${id}-about`, onchange: (event) => set(name, event.target.value) },
        h('option', { value: '' }, 'default'), ...choices.map((word) => h('option', { value: word, selected: word === value }, word)))
      : h('input', { id, type: 'text', value, placeholder: 'default', autocomplete: 'off', spellcheck: 'false', 'aria-describedby': `${id}-about`,
        onchange: (event) => set(name, event.target.value.trim()) });
    return h('div', { class: 'field', 'data-parameter': name },
      h('div', { class: 'field-head' }, h('label', { for: id }, name)), control, h('p', { class: 'about', id: `${id}-about` }, text));
  }

  store.watch((s) => [s.catalogue, s.revision], ({ catalogue }) => {
    const fields = (catalogue?.common || []).filter((p) => !ELSEWHERE.has(p.name));
    refill(box, ...FIRST.map((name) => fields.find((p) => p.name === name)).filter(Boolean).map(field));
    refill(more, ...fields.filter((p) => !FIRST.includes(p.name)).map(field));
  });
  store.watch((s) => [s.common.verify], ({ common }) => { verify.checked = common.verify === '1'; });
  verify.addEventListener('change', () => set('verify', verify.checked ? '1' : ''));
}
