/**
 * A text as guards read it, beside the text as it is sent: in JSON a character may be written as an escape. Both advance
 * together, piece by piece.
 */

export type TextView = {
  /** Adds a piece, and returns what is read of it; an escape that is cut waits for the rest. */
  push(piece: string): string
  /** What is read of a cut escape, which stays as it is. */
  end(): string
  /** The next characters that were read, as they are sent. */
  take(count: number): string
  /** A text in place of the next characters, in the form in which it is sent. */
  encode(text: string): string
}

export const createTextView = (isJson: boolean): TextView => (isJson ? new JsonView() : new PlainView())

class PlainView implements TextView {
  #text = ''

  push(piece: string): string {
    this.#text += piece
    return piece
  }

  end(): string {
    return ''
  }

  take(count: number): string {
    const taken = this.#text.slice(0, count)
    this.#text = this.#text.slice(count)
    return taken
  }

  encode(text: string): string {
    return text
  }
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

class JsonView implements TextView {
  #raw = ''
  /** The lengths of the characters that were read and not taken, as they are sent. */
  #lengths: number[] = []
  #cut = ''
  #isInString = false

  push(piece: string): string {
    this.#raw += piece
    const text = this.#cut + piece
    this.#cut = ''
    let read = ''
    for (let at = 0; at < text.length; ) {
      const sign = text[at] as string
      const length = sign !== '\\' ? 1 : text[at + 1] === 'u' ? 6 : 2
      if (at + length > text.length) {
        this.#cut = text.slice(at)
        break
      }
      read += length === 1 ? sign : decoded(text.slice(at, at + length))
      this.#lengths.push(length)
      at += length
    }
    return read
  }

  end(): string {
    const cut = this.#cut
    this.#cut = ''
    for (let at = 0; at < cut.length; at++) this.#lengths.push(1)
    return cut
  }

  take(count: number): string {
    let length = 0
    for (const one of this.#lengths.splice(0, count)) {
      if (one === 1 && this.#raw[length] === '"') this.#isInString = !this.#isInString
      length += one
    }
    const taken = this.#raw.slice(0, length)
    this.#raw = this.#raw.slice(length)
    return taken
  }

  /** A number that is replaced becomes a string. */
  encode(text: string): string {
    const quoted = JSON.stringify(text)
    return this.#isInString ? quoted.slice(1, -1) : quoted
  }
}

/** One character for each escape; what is no escape is read as its last character. */
function decoded(sequence: string): string {
  const [, kind = ''] = sequence
  if (kind !== 'u') return ESCAPES[kind] ?? kind
  const code = Number.parseInt(sequence.slice(2), 16)
  return Number.isNaN(code) ? '\ufffd' : String.fromCharCode(code)
}
