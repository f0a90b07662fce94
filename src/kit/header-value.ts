/** Values of header fields from texts that others chose: names of models, addresses. None of them can be refused by HTTP. */

const PLAIN = /^[\x20-\x7e]*$/

/**
 * Visible ASCII and blanks as they are; all else percent-encoded as UTF-8 (RFC 3986), half a surrogate pair as U+FFFD.
 * Line ends cannot end the field, and no runtime throws for a character that the field cannot hold.
 */
export const headerValue = (text: string): string =>
  PLAIN.test(text) ? text : text.toWellFormed().replace(/[^\x20-\x7e]+/g, encodeURIComponent)
