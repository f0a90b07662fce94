/** The worker thread of long embeddings: receives inputs, returns their vectors. */
import { answerQuestions } from '../../../src/kit/idle-worker.ts'
import type { EmbeddingInput } from '../../../src/spec/embedding-request.ts'
import { embed } from './embed.ts'

export type EmbedQuestion = { inputs: EmbeddingInput[]; dimensions: number }

answerQuestions(({ inputs, dimensions }: EmbedQuestion) => inputs.map((input) => embed(input, dimensions)))
