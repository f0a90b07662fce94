/** Compares the path of a setting with patterns such as `providers.*.key`. */

/** `*` is any one step, and `**` at the end one or more. */
export const isListed = (patterns: readonly string[], path: readonly (string | number)[]): boolean =>
  patterns.some((pattern) => matches(pattern.split('.'), path))

function matches(steps: readonly string[], path: readonly (string | number)[]): boolean {
  const isOpen = steps.at(-1) === '**'
  if (isOpen ? path.length < steps.length : path.length !== steps.length) return false
  return steps.every((step, index) => step === '*' || step === '**' || step === String(path[index]))
}
