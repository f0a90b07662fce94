/** Fills `${NAME}` in a text from the environment. */

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

export function interpolate(template: string, environment: Record<string, string | undefined>): Interpolated {
  const troubles: string[] = []
  let changed = false
  const text = template.replace(REFERENCE, (whole, inner: string | undefined) => {
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
