/** Addresses of files that any client could name: not those that a vendor reads with the operator's rights. */
import type { TextShape } from '../../kit/allow-list.ts'

/** Hosts at which a vendor reads files of the account that asks. */
const OF_THE_ACCOUNT = /(^|\.)(generativelanguage\.googleapis\.com|storage\.cloud\.google\.com)\.?$/

export const FILE_URL: TextShape = {
  accepts(text) {
    const url = URL.parse(text)
    if (url?.protocol === 'data:') return true
    return (url?.protocol === 'http:' || url?.protocol === 'https:') && !OF_THE_ACCOUNT.test(url.hostname)
  },
}

/** The same, or the bytes themselves in base64. */
export const FILE_URL_OR_BASE64: TextShape = {
  accepts: (text) => !/^\s*[a-z][a-z0-9+.-]*:/i.test(text.slice(0, 100)) || FILE_URL.accepts(text), // begins as an address
}
