/** Encodes any text, such as a model name or an address, as a valid header value. */

const PLAIN = /^[\x20-\x7e]*$/

/**
 * Visible ASCII and spaces are unchanged; everything else is percent-encoded UTF-8 (RFC 3986), a lone surrogate as U+FFFD.
 * Line ends cannot end the field, and no runtime throws for an invalid character.
 */
export const headerValue = (text: string): string =>
  PLAIN.test(text) ? text : text.toWellFormed().replace(/[^\x20-\x7e]+/g, encodeURIComponent)
