/** The texts of a rerank request's documents. */
import { GatewayError } from '../../spec/error.ts'
import type { RerankRequest } from '../../spec/rerank-request.ts'

type Document = RerankRequest['documents'][number]

/** For objects: the values of `rank_fields` in that order, one per line. Throws for an object that has none. */
export function textsOf({ documents, rank_fields }: Pick<RerankRequest, 'documents' | 'rank_fields'>): string[] {
  // Each field once: repeated names would turn a short request into a text of any length.
  const fields = rank_fields && rank_fields.length > 0 ? [...new Set(rank_fields)] : ['text']
  return documents.map((document, index) => textOf(document, { fields, index }))
}

function textOf(document: Document, { fields, index }: { fields: string[]; index: number }): string {
  if (typeof document === 'string') return document
  const values = fields.flatMap((name) => {
    const value = Object.hasOwn(document, name) ? document[name] : undefined
    return value === undefined || value === null ? [] : [textValue(value)]
  })
  if (values.length > 0) return values.join('\n')
  const [first = 'text'] = fields
  const param = `documents[${index}].${first}`
  const others = fields.length > 1 ? `, or another of "rank_fields",` : ''
  throw new GatewayError(
    'missing_required_parameter',
    `"${param}"${others} is required: it is the text to be ranked.`,
    {
      param,
    },
  )
}

const textValue = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value))

/** A document in its result: a text becomes an object with `text`. */
export const documentObject = (document: Document | undefined): Record<string, unknown> =>
  typeof document === 'object' ? document : { text: document ?? '' }
