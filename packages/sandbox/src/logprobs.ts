/** Simulated log probabilities, in the shape that clients of `logprobs` expect. */
import { createRandom, type Random } from './random.ts'
import { OTHER_TOKENS } from './simulated-text.ts'

type TokenLogprob = { token: string; logprob: number; bytes: number[] }
type Logprobs = { content: (TokenLogprob & { top_logprobs: TokenLogprob[] })[]; refusal: null }

export type LogprobsRequest = { seed: string; top: number }

const encoder = new TextEncoder()
const entry = (token: string, logprob: number): TokenLogprob => ({
  token,
  logprob: Number(logprob.toFixed(6)),
  bytes: [...encoder.encode(token)],
})

/** For the tokens from position `from` on. Each position of an answer has the same values, complete or streamed. */
export function logprobsOf(pieces: string[], from: number, { seed, top }: LogprobsRequest): Logprobs {
  const content = pieces.map((piece, at) => {
    const random = createRandom(`logprobs:${from + at}:${seed}`)
    const logprob = -random.next() * random.next()
    return { ...entry(piece, logprob), top_logprobs: alternatives(piece, logprob, { random, top }) }
  })
  return { content, refusal: null }
}

/** The token itself first, then less and less likely ones: the sum of their probabilities stays below 1. */
function alternatives(
  piece: string,
  logprob: number,
  { random, top }: { random: Random; top: number },
): TokenLogprob[] {
  if (top === 0) return []
  const found = [entry(piece, logprob)]
  const start = random.below(OTHER_TOKENS.length)
  let left = Math.min(1 - Math.exp(logprob), Math.exp(logprob))
  for (let at = 0; found.length < top; at++) {
    const token = OTHER_TOKENS[(start + at) % OTHER_TOKENS.length] ?? ''
    if (token === piece) continue
    left *= 0.4 + 0.1 * random.next()
    found.push(entry(token, Math.log(Math.max(left, 1e-9))))
  }
  return found
}
