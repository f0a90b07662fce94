/** The file URLs that a client may send: not those that a vendor reads with the operator's credentials. */
import type { TextShape } from '../../kit/allow-list.ts'

/** Hosts from which a vendor reads files of the calling account. */
const ACCOUNT_HOSTS = /(^|\.)(generativelanguage\.googleapis\.com|storage\.cloud\.google\.com)\.?$/

export const FILE_URL: TextShape = {
  accepts(text) {
    const url = URL.parse(text)
    if (url?.protocol === 'data:') return true
    return (url?.protocol === 'http:' || url?.protocol === 'https:') && !ACCOUNT_HOSTS.test(url.hostname)
  },
}

/** The same, or the file itself in base64. */
export const FILE_URL_OR_BASE64: TextShape = {
  accepts: (text) => !/^\s*[a-z][a-z0-9+.-]*:/i.test(text.slice(0, 100)) || FILE_URL.accepts(text), // starts with a scheme
}
