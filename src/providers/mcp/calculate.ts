/** Calculates an arithmetic expression, for the built-in MCP server. */

const TOKEN = /\s*(?:(\d+(?:\.\d+)?(?:e[+-]?\d+)?)|([-+*/%^()]))/iy
const MAX_CHARACTERS = 200

/** Numbers, `+ - * / % ^` and parentheses. Throws an Error that says what is wrong. */
export function calculate(expression: string): number {
  if (expression.length > MAX_CHARACTERS) throw new Error(`The expression has more than ${MAX_CHARACTERS} characters.`)
  const tokens = tokensOf(expression)
  let at = 0

  function sum(): number {
    let value = product()
    while (tokens[at] === '+' || tokens[at] === '-')
      value = tokens[at++] === '+' ? value + product() : value - product()
    return value
  }
  function product(): number {
    let value = signed()
    while (tokens[at] === '*' || tokens[at] === '/' || tokens[at] === '%') {
      const sign = tokens[at++]
      const other = signed()
      value = sign === '*' ? value * other : sign === '/' ? value / other : value % other
    }
    return value
  }
  function signed(): number {
    if (tokens[at] !== '-' && tokens[at] !== '+') return power()
    return tokens[at++] === '-' ? -signed() : signed()
  }
  function power(): number {
    const base = atom()
    if (tokens[at] !== '^') return base
    at++
    return base ** signed()
  }
  function atom(): number {
    const token = tokens[at++]
    if (token === '(') {
      const value = sum()
      if (tokens[at++] !== ')') throw new Error('The expression lacks a ")".')
      return value
    }
    const value = Number(token ?? 'nothing')
    if (Number.isNaN(value))
      throw new Error(`The expression has ${token === undefined ? 'no' : `"${token}" instead of a`} number.`)
    return value
  }

  const value = sum()
  if (at < tokens.length) throw new Error(`The expression has "${tokens[at]}" where it should end.`)
  if (!Number.isFinite(value)) throw new Error('The result is not a finite number.')
  return value
}

function tokensOf(expression: string): string[] {
  const tokens: string[] = []
  const text = expression.trimEnd()
  for (TOKEN.lastIndex = 0; TOKEN.lastIndex < text.length; ) {
    const from = TOKEN.lastIndex
    const match = TOKEN.exec(text)
    if (!match)
      throw new Error(`The expression has "${text.slice(from).trim().slice(0, 20)}", which is no number or operator.`)
    tokens.push(match[1] ?? match[2] ?? '')
  }
  return tokens
}
