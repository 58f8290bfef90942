/* Elements, made without markup in strings: texts of the service or of a file are always text. */
const PROPERTIES = new Set(['value', 'checked', 'disabled', 'selected', 'hidden', 'textContent', 'open']);
const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false)
      continue;
    if (name.startsWith('on'))
      element.addEventListener(name.slice(2), value);
    else if (PROPERTIES.has(name))
      element[name] = value;
    else
      element.setAttribute(name, value === true ? '' : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/* h('button', {class: 'chip', onclick: act}, 'text', child…) */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function find(selector) {
  return document.querySelector(selector);
}

/* Makes a button that shows a sign, with a name for those who do not see it. */
export function signButton(sign, name, onclick, attributes = {}) {
  return h('button', { type: 'button', class: 'sign', 'aria-label': name, title: name, onclick, ...attributes }, sign);
}

/* Replaces an element's children; the focused child is focused again if a new one has its id. */
export function refill(element, ...children) {
  const id = element.contains(document.activeElement) ? document.activeElement.id : '';
  element.replaceChildren(...children.flat().filter(Boolean));
  if (id)
    document.getElementById(id)?.focus();
}

/* Speaks to those who hear the page. */
export function announce(text) {
  const live = find('#live');
  if (live)
    live.textContent = text;
}

/* Copies a text; if the page may not (no TLS), it selects it instead. Returns true if it was
 * copied. */
export async function copy(text, element) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    if (element)
      getSelection().selectAllChildren(element);
    return false;
  }
}
