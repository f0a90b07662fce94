/** Learns how long the answers of a model to a token are, so that calls may hold what they probably cost. */

/** Pairs of a token and a model that are remembered, of 200 bytes each; the least recently used is forgotten. */
const MOST_PAIRS = 10_000
/** The 99th percentile of fewer answers would be a guess. */
const LEAST_ANSWERS = 100
/** Then all counts are halved, so that later answers count more. */
const MOST_ANSWERS = 1_000
const SHARE = 0.99

/** A bucket ends at 2^(n/4) tokens: each percentile is at most a fifth too high, never too low. */
const BUCKETS_PER_DOUBLING = 4
/** Up to 2^25 tokens, which is more than any model answers. */
const BUCKETS = 25 * BUCKETS_PER_DOUBLING + 1

const bucketOf = (tokens: number): number =>
  Math.min(BUCKETS - 1, Math.max(0, Math.ceil(Math.log2(tokens) * BUCKETS_PER_DOUBLING)))

const endOf = (bucket: number): number => Math.ceil(2 ** (bucket / BUCKETS_PER_DOUBLING))

type Answers = { counts: Uint16Array; total: number; percentile: number | undefined }

/** Of the answers of each model to each token. */
export function createLikelyOutputs() {
  /** The least recently used first. */
  const pairs = new Map<string, Answers>()
  const keyOf = (token_id: string, model_id: string) => `${token_id} ${model_id}`

  function answersOf(key: string): Answers {
    const known = pairs.get(key)
    const answers = known ?? { counts: new Uint16Array(BUCKETS), total: 0, percentile: undefined }
    const [oldest] = pairs.size >= MOST_PAIRS ? pairs.keys() : []
    const removed = known ? key : oldest
    if (removed !== undefined) pairs.delete(removed)
    pairs.set(key, answers)
    return answers
  }

  return {
    /** A number of tokens that 99 of 100 answers do not exceed; undefined: there were too few. */
    of: (token_id: string, model_id: string): number | undefined => pairs.get(keyOf(token_id, model_id))?.percentile,
    learn(token_id: string, model_id: string, output_tokens: number): void {
      const answers = answersOf(keyOf(token_id, model_id))
      const bucket = bucketOf(output_tokens)
      answers.counts[bucket] = (answers.counts[bucket] ?? 0) + 1
      answers.total++
      if (answers.total >= MOST_ANSWERS) halve(answers)
      answers.percentile = answers.total < LEAST_ANSWERS ? undefined : percentileOf(answers)
    },
  }
}

function halve(answers: Answers): void {
  answers.total = 0
  for (const [bucket, count] of answers.counts.entries()) {
    answers.counts[bucket] = count >> 1
    answers.total += count >> 1
  }
}

function percentileOf({ counts, total }: Answers): number {
  let rest = total * SHARE
  for (const [bucket, count] of counts.entries()) {
    rest -= count
    if (rest <= 0) return endOf(bucket)
  }
  return endOf(BUCKETS - 1)
}
