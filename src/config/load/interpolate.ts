/** Fills `${NAME}` in a text from the environment, and `${file:path}` from files. */

/** Throws an Error with the reason where a file cannot be used. */
type ReadSecret = (file: string) => string

type Interpolated = {
  text: string
  /** Whether a variable or a default was filled in. */
  changed: boolean
  /** Error messages. They name variables and never contain values. */
  troubles: string[]
}

/** `$${` is an escaped `${`; `${...}` is a reference; an unclosed `${` is an error. */
const REFERENCE = /\$\$\{|\$\{([^}]*)\}|\$\{/g
/** A shell variable name with an optional default for an unset or empty variable: `NAME` or `NAME:-default`. */
const NAME = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/
/** Before the path of a file. */
const FILE = 'file:'

const noFile: ReadSecret = () => {
  throw new Error('no file can be read here')
}

export function interpolate(
  template: string,
  environment: Record<string, string | undefined>,
  readSecret: ReadSecret = noFile,
): Interpolated {
  const troubles: string[] = []
  let changed = false
  const text = template.replace(REFERENCE, (whole, inner: string | undefined) => {
    if (whole === '$${') return '${'
    if (inner?.startsWith(FILE)) {
      changed = true
      const file = inner.slice(FILE.length)
      try {
        return readSecret(file)
      } catch (error) {
        troubles.push(`the file ${JSON.stringify(file)} cannot be used: ${(error as Error).message}`)
        return ''
      }
    }
    const parsed = inner === undefined ? undefined : NAME.exec(inner)
    if (!parsed) {
      troubles.push(
        'a "${" that is not ${NAME}, ${NAME:-default} or ${file:path}; write "$${" for the characters themselves',
      )
      return whole
    }
    changed = true
    const [, name = '', fallback] = parsed
    const value = environment[name]
    if (fallback !== undefined) return value === undefined || value === '' ? fallback : value
    if (value === undefined) troubles.push(`the environment variable ${name} is not set`)
    return value ?? ''
  })
  return { text, changed, troubles }
}

/** What stands in the references of a text: names of variables, and whatever else was written there. */
export const referencesIn = (template: string): string[] =>
  [...template.matchAll(REFERENCE)]
    .filter(([whole]) => whole !== '$${')
    .map(([, inner = '']) => NAME.exec(inner)?.[1] ?? inner)

export const isFileReference = (reference: string): boolean => reference.startsWith(FILE)
