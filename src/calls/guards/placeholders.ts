/** Placeholders for values that a provider must not see, and the values in their place again. They live as long as one call. */

export class Placeholders {
  readonly #byValue = new Map<string, string>()
  readonly #values = new Map<string, string>()
  readonly #counts = new Map<string, number>()
  /** Those that the client itself has written, such as in an example: they stand for nothing. */
  readonly #taken = new Set<string>()
  /** How placeholders begin, so that a cut one is known without a look at all of them. */
  readonly #beginnings = new Set<string>()

  /** `texts`: of the request, before any value is replaced. */
  avoid(texts: readonly string[]): void {
    for (const text of texts)
      for (let open = text.indexOf('['); open !== -1; open = text.indexOf('[', open + 1)) {
        const bracketed = bracketedAt(text, open)
        if (bracketed !== undefined) this.#taken.add(bracketed)
      }
  }

  /** The same for the same value. Numbered as they first occur, so that a longer conversation keeps those of its begin. */
  of(label: string, value: string): string {
    const known = this.#byValue.get(value)
    if (known !== undefined) return known
    let number = this.#counts.get(label) ?? 0
    let placeholder: string
    do placeholder = `[${label}_${++number}]`
    while (this.#taken.has(placeholder))
    this.#counts.set(label, number)
    this.#byValue.set(value, placeholder)
    this.#values.set(placeholder, value)
    for (let length = 1; length < placeholder.length; length++) this.#beginnings.add(placeholder.slice(0, length))
    return placeholder
  }

  get isEmpty(): boolean {
    return this.#values.size === 0
  }

  /** Puts the values into a text that arrives in pieces. */
  restorer(isJson: boolean): Restorer {
    return new Restorer({ values: this.#values, beginnings: this.#beginnings }, isJson)
  }

  /** The values in a whole text. */
  restored(text: string, isJson: boolean): string {
    const restorer = this.restorer(isJson)
    return restorer.push(text) + restorer.end()
  }
}

type Known = { values: ReadonlyMap<string, string>; beginnings: ReadonlySet<string> }

/** Holds back only what may be the begin of a placeholder. */
class Restorer {
  readonly #known: Known
  readonly #isJson: boolean
  #held = ''

  constructor(known: Known, isJson: boolean) {
    this.#known = known
    this.#isJson = isJson
  }

  push(piece: string): string {
    const text = this.#held + piece
    this.#held = ''
    let out = ''
    let at = 0
    for (let open = text.indexOf('['); open !== -1; open = text.indexOf('[', at)) {
      out += text.slice(at, open)
      const found = this.#find(text, open)
      if (found === 'cut') {
        this.#held = text.slice(open)
        return out
      }
      out += found === undefined ? '[' : this.#encoded(found[1])
      at = open + (found === undefined ? 1 : found[0].length)
    }
    return out + text.slice(at)
  }

  end(): string {
    const held = this.#held
    this.#held = ''
    return held
  }

  #find(text: string, at: number): [string, string] | 'cut' | undefined {
    const { values, beginnings } = this.#known
    const placeholder = bracketedAt(text, at)
    const value = placeholder === undefined ? undefined : values.get(placeholder)
    if (placeholder !== undefined && value !== undefined) return [placeholder, value]
    if (text.length - at < MAX_PLACEHOLDER && beginnings.has(text.slice(at))) return 'cut'
    return undefined
  }

  /** Providers write placeholders into strings of JSON: as the provider's own text, they are written nowhere else. */
  #encoded(value: string): string {
    return this.#isJson ? JSON.stringify(value).slice(1, -1) : value
  }
}

/** The label, a number and what is around them. */
const MAX_PLACEHOLDER = 32

/** What is in brackets from here, if it is no longer than a placeholder: without a look at the rest of the text. */
function bracketedAt(text: string, open: number): string | undefined {
  const part = text.slice(open, open + MAX_PLACEHOLDER)
  const end = part.indexOf(']')
  return end === -1 ? undefined : part.slice(0, end + 1)
}
