/* The service that the page belongs to, with the user's token. Addresses are relative to the
 * page's, so that it works below any prefix. */
import { Service } from './convolved.js';
import { fetchShown } from './upload.js';

const KEY = 'convolved-token';

/* The token lives as long as the tab. */
function keptToken() {
  try {
    return sessionStorage.getItem(KEY) || '';
  } catch {
    return '';
  }
}

/* The page itself says when it asks again. */
export const service = new Service(new URL('./', document.baseURI), { token: keptToken(), patience: 0, fetch: fetchShown });

export function setToken(text) {
  service.token = text;
  try {
    if (text)
      sessionStorage.setItem(KEY, text);
    else
      sessionStorage.removeItem(KEY);
  } catch {
    // It lives as long as the page.
  }
  dispatchEvent(new Event('tokenchange'));
}
