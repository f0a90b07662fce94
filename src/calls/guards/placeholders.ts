/** Placeholders for values that a provider must not see, and the values in their place again. They live as long as one call. */

export class Placeholders {
  readonly #byValue = new Map<string, string>()
  readonly #values = new Map<string, string>()
  readonly #counts = new Map<string, number>()
  /** Those that the client itself has written, such as in an example: they stand for nothing. */
  #taken: (placeholder: string) => boolean = () => false

  /** `texts`: of the request, before any value is replaced. */
  avoid(texts: readonly string[]): void {
    const written = texts.filter((text) => text.includes('['))
    this.#taken = (placeholder) => written.some((text) => text.includes(placeholder))
  }

  /** The same for the same value. Numbered as they first occur, so that a longer conversation keeps those of its begin. */
  of(label: string, value: string): string {
    const known = this.#byValue.get(value)
    if (known !== undefined) return known
    let number = this.#counts.get(label) ?? 0
    let placeholder: string
    do placeholder = `[${label}_${++number}]`
    while (this.#taken(placeholder))
    this.#counts.set(label, number)
    this.#byValue.set(value, placeholder)
    this.#values.set(placeholder, value)
    return placeholder
  }

  get isEmpty(): boolean {
    return this.#values.size === 0
  }

  /** Puts the values into a text that arrives in pieces. */
  restorer(isJson: boolean): Restorer {
    return new Restorer(this.#values, isJson)
  }

  /** The values in a whole text. */
  restored(text: string, isJson: boolean): string {
    const restorer = this.restorer(isJson)
    return restorer.push(text) + restorer.end()
  }
}

/** Holds back only what may be the begin of a placeholder. */
class Restorer {
  readonly #values: ReadonlyMap<string, string>
  readonly #isJson: boolean
  #held = ''

  constructor(values: ReadonlyMap<string, string>, isJson: boolean) {
    this.#values = values
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
    const rest = text.slice(at, at + MAX_PLACEHOLDER)
    for (const entry of this.#values) {
      if (rest.startsWith(entry[0])) return entry
      if (rest.length < entry[0].length && at + rest.length === text.length && entry[0].startsWith(rest)) return 'cut'
    }
    return undefined
  }

  /** Providers write placeholders into strings of JSON: as the provider's own text, they are written nowhere else. */
  #encoded(value: string): string {
    return this.#isJson ? JSON.stringify(value).slice(1, -1) : value
  }
}

/** The label, a number and what is around them. */
const MAX_PLACEHOLDER = 32
