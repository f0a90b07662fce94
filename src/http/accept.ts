/** Chooses between two media types by an Accept header (RFC 9110, section 12.5.1). */

/** Whether the header names `type`, and gives it no less weight than `other`, which a wildcard may mean too. */
export function prefersType(accept: string | null, type: string, other: string): boolean {
  const weights = new Map<string, number>()
  for (const item of (accept ?? '').toLowerCase().split(',')) {
    const [range = '', ...parameters] = item.split(';').map((part) => part.trim())
    const given = parameters.find((parameter) => parameter.startsWith('q='))
    const weight = given === undefined ? 1 : Number(given.slice('q='.length)) || 0
    weights.set(range, Math.max(weight, weights.get(range) ?? 0))
  }
  const named = weights.get(type) ?? 0
  const rest = weights.get(other) ?? weights.get(`${other.split('/')[0]}/*`) ?? weights.get('*/*') ?? 0
  return named > 0 && named >= rest
}
