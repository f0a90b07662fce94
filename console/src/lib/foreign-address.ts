/** Addresses that a provider or a model has chosen: only those of the web may become a link, and none is loaded. */

/** A path of this gateway. `//host` and `/\\host` are other hosts to a browser. */
export const isOwnPath = (address: string): boolean => /^\/(?![/\\])/.test(address)

/** Of a parsed address, whose other letters are in Punycode. Browsers differ in what else they take. */
const HOST = /^([a-z0-9._-]+|\[[0-9a-f:.]+\])$/i

/** Undefined: text that must not become a link. A link with a name in front of its host is one that deceives. */
export function webAddress(address: string): URL | undefined {
  const url = /^https?:\/\//i.test(address) ? URL.parse(address) : null
  return url && url.username === '' && url.password === '' && HOST.test(url.hostname) ? url : undefined
}
