/* Uploads with a bar: fetch() does not tell how much of a body is sent, XMLHttpRequest does. */
import { find, h } from './dom.js';

const PATIENCE_MS = 300; // shorter uploads have no bar

/* Shows how much of a request's body is sent, until all of it is, or the answer is there. */
function showProgress(request) {
  const bar = h('progress', { max: '1', value: 0 });
  const element = h('label', { class: 'upload' }, 'Uploading', bar);
  const timer = setTimeout(() => find('#uploads').append(element), PATIENCE_MS);

  request.upload.addEventListener('progress', ({ loaded, total }) => { bar.value = loaded / total; });
  for (const end of [request.upload, request])
    end.addEventListener('loadend', () => {
      clearTimeout(timer);
      element.remove();
    });
}

function headersOf(request) {
  return request.getAllResponseHeaders().split('\r\n').filter(Boolean).map((line) => line.split(/: ?(.*)/s, 2));
}

/* Does the same as fetch(), for a body that is sent by POST. */
function send(url, { headers, body, signal }) {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();

    signal?.throwIfAborted();
    signal?.addEventListener('abort', () => request.abort(), { once: true });
    request.open('POST', url);
    request.responseType = 'blob';
    for (const [name, value] of headers)
      request.setRequestHeader(name, value);
    request.onload = () => {
      const { status, statusText, response, responseURL } = request;
      const answer = new Response(response.size ? response : null, { status, statusText, headers: headersOf(request) });
      done(Object.defineProperty(answer, 'url', { value: responseURL }));
    };
    request.onerror = () => fail(new TypeError('The network failed'));
    request.onabort = () => fail(signal.reason);
    showProgress(request);
    request.send(body);
  });
}

/* fetch(), with a bar for bodies if the options say so: {bar: true}. */
export const fetchShown = (url, options) => (options.bar ? send(url, options) : fetch(url, options));
