/** Fills `${NAME}` in a text from the environment. */

type Interpolated = {
  text: string
  /** Whether anything was taken from the environment or from a default. */
  changed: boolean
  /** What is wrong, in words; names variables, never values. */
  troubles: string[]
}

/** `$${` stands for a plain `${`; `${...}` is a reference; a `${` that nothing closes is a mistake. */
const REFERENCE = /\$\$\{|\$\{([^}]*)\}|\$\{/g
/** A variable's name as shells have it, and what to use where it is unset or empty: `NAME` or `NAME:-default`. */
const NAME = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/

export function interpolate(written: string, environment: Record<string, string | undefined>): Interpolated {
  const troubles: string[] = []
  let changed = false
  const text = written.replace(REFERENCE, (whole, inner: string | undefined) => {
    if (whole === '$${') return '${'
    const parsed = inner === undefined ? undefined : NAME.exec(inner)
    if (!parsed) {
      troubles.push('a "${" that is not ${NAME} or ${NAME:-default}; write "$${" for the characters themselves')
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
