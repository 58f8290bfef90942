/* The service's API for pages. Addresses are relative to the page's, so that it works below any prefix. */
export const base = new URL('./', document.baseURI);

const KEY = 'convolved-token';

/* The token lives as long as the tab. */
export function token() {
  try {
    return sessionStorage.getItem(KEY) || '';
  } catch {
    return '';
  }
}

export function setToken(text) {
  try {
    if (text)
      sessionStorage.setItem(KEY, text);
    else
      sessionStorage.removeItem(KEY);
  } catch {
    return false;
  }
  dispatchEvent(new Event('tokenchange'));
  return true;
}

/* What the service says of an error (RFC 9457), or that it says nothing. */
export class Problem extends Error {
  constructor(document, retryAfter = 0) {
    super(document.detail || document.title);
    this.title = document.title;
    this.detail = document.detail || '';
    this.status = document.status || 0;
    this.type = (document.type || '').replace('/problems/', '');
    this.parameter = document.parameter || '';
    this.retryAfter = retryAfter;
  }
}

async function problemOf(response) {
  const retryAfter = Number(response.headers.get('Retry-After')) || 0;
  try {
    return new Problem(await response.json(), retryAfter);
  } catch {
    return new Problem({ title: `The answer is ${response.status} ${response.statusText}`, status: response.status },
      retryAfter);
  }
}

/* request('v1/filters') → Response; throws a Problem, or what an aborted fetch throws. */
export async function request(target, options = {}) {
  const headers = new Headers(options.headers);
  let response;

  if (token())
    headers.set('Authorization', `Bearer ${token()}`);
  try {
    response = await fetch(new URL(target, base), { ...options, headers });
  } catch (error) {
    if (error.name === 'AbortError')
      throw error;
    throw new Problem({ title: 'The service does not answer', detail: 'It may be restarting, or the network is down.' }, 2);
  }
  if (!response.ok)
    throw await problemOf(response);
  return response;
}

export async function getJson(target, options) {
  return (await request(target, options)).json();
}

/* The events of a stream, {event, data}, one after another, until it ends. (EventSource sends no token.) */
export async function* events(target, options) {
  const response = await request(target, { ...options, headers: { Accept: 'text/event-stream' } });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';

  for (;;) {
    const { value, done } = await reader.read();
    if (done)
      return;
    text += value;
    for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
      const fields = { event: 'message', data: '' };
      for (const line of text.slice(0, end).split('\n')) {
        const colon = line.indexOf(':');
        if (colon > 0)
          fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
      }
      if (fields.data)
        yield { event: fields.event, data: JSON.parse(fields.data) };
    }
  }
}
