/** The worker thread of long embeddings: receives inputs, returns their vectors. */
import { parentPort } from 'node:worker_threads'
import type { EmbeddingInput } from '../../../src/spec/embedding-request.ts'
import { embed } from './embed.ts'

type EmbedQuestion = { ticket: number; inputs: EmbeddingInput[]; dimensions: number }
export type EmbedAnswer = { ticket: number; embeddings: number[][] }

parentPort?.on('message', ({ ticket, inputs, dimensions }: EmbedQuestion) => {
  const answer: EmbedAnswer = { ticket, embeddings: inputs.map((input) => embed(input, dimensions)) }
  parentPort?.postMessage(answer)
})
