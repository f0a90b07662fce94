/** The documents of a rerank request as the texts that are read of them. */
import { GatewayError } from '../spec/error.ts'
import type { RerankRequest } from '../spec/rerank-request.ts'

type Document = RerankRequest['documents'][number]

/** Of objects, the values of `rank_fields` in that order, each on a line of its own. Throws for one that has none. */
export function textsOf({ documents, rank_fields }: Pick<RerankRequest, 'documents' | 'rank_fields'>): string[] {
  // Each once: a name that is repeated would make a text of any length from a short request.
  const fields = rank_fields && rank_fields.length > 0 ? [...new Set(rank_fields)] : ['text']
  return documents.map((document, index) => textOf(document, { fields, index }))
}

function textOf(document: Document, { fields, index }: { fields: string[]; index: number }): string {
  if (typeof document === 'string') return document
  const values = fields.flatMap((name) => {
    const value = Object.hasOwn(document, name) ? document[name] : undefined
    return value === undefined || value === null ? [] : [written(value)]
  })
  if (values.length > 0) return values.join('\n')
  const [first = 'text'] = fields
  const param = `documents[${index}].${first}`
  const others = fields.length > 1 ? `, or another of "rank_fields",` : ''
  throw new GatewayError('missing_required_parameter', `"${param}"${others} is required: it is the text to be read.`, {
    param,
  })
}

const written = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** A document as it is repeated in its result: a text becomes an object with `text`. */
export const shown = (document: Document | undefined): Record<string, unknown> =>
  typeof document === 'object' ? document : { text: document ?? '' }
