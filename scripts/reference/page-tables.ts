/** The generated tables inside hand-written pages of the manual: fields of requests and responses, directives. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TSchema } from 'typebox'
import { SpeechRequest } from '../../src/spec/audio-request.ts'
import { ChatRequest } from '../../src/spec/chat-request.ts'
import { EmbeddingRequest } from '../../src/spec/embedding-request.ts'
import { ImageRequest } from '../../src/spec/image-request.ts'
import { Model } from '../../src/spec/model.ts'
import { ModerationRequest } from '../../src/spec/moderation-request.ts'
import { RerankRequest } from '../../src/spec/rerank-request.ts'
import { FAIL_CODES } from '../../src/spec/task.ts'
import { ThreeDRequest } from '../../src/spec/three-d-request.ts'
import { VideoRequest } from '../../src/spec/video-request.ts'
import { directiveRows } from './directives.ts'
import { membersOf, type Schema, typeOf } from './schema.ts'
import { code, definitions } from './table.ts'

const MANUAL = join(import.meta.dir, '../../docs/manual')
const START = '<!--generated:docs:reference-->'
const END = '<!--end-->'

const failCodeRows = (): string[][] =>
  Object.entries(FAIL_CODES).map(([name, { when, advice }]) => [code(name), '', `${when} *${advice}*`])

const RESPONSES: Record<string, TSchema> = { 'how-to/models.md': Model }
const REQUESTS: Record<string, TSchema> = {
  'reference/3d.md': ThreeDRequest,
  'reference/audio.md': SpeechRequest,
  'reference/chat.md': ChatRequest,
  'reference/embeddings.md': EmbeddingRequest,
  'reference/images.md': ImageRequest,
  'reference/moderations.md': ModerationRequest,
  'reference/rerank.md': RerankRequest,
  'reference/videos.md': VideoRequest,
}

/** Each page as it should be: what stands around its table stays. */
export const pagesWithTables = () => [
  ...Object.entries(REQUESTS).map(([path, schema]) => withTable(path, requestFields(schema as Schema))),
  ...Object.entries(RESPONSES).map(([path, schema]) => withTable(path, responseFields(schema as Schema))),
  withTable('reference/sandbox.md', definitions(directiveRows())),
  withTable('reference/fail-codes.md', definitions(failCodeRows())),
]

function withTable(path: string, text: string) {
  const page = readFileSync(join(MANUAL, path), 'utf8')
  const [start, end] = [page.indexOf(START), page.indexOf(END)]
  if (start === -1 || end === -1) throw new Error(`${path} needs the lines ${START} and ${END}.`)
  return { path, text: `${page.slice(0, start)}${START}\n\n${text}\n\n${page.slice(end)}` }
}

const requestFields = (schema: Schema): string =>
  listOf(
    fieldsOf(schema).map(({ isRequired, type, ...field }) => ({
      ...field,
      type: [...(type === 'text' ? [] : [type]), ...(isRequired ? ['required'] : [])].join(', '),
    })),
  )

const responseFields = (schema: Schema): string =>
  listOf(
    fieldsOf(schema).map(({ isRequired, type, ...field }) => ({
      ...field,
      type: `${type}${isRequired ? '' : ', if known'}`,
    })),
  )

type Field = { name: string; type: string; meaning: string }

const listOf = (fields: Field[]): string =>
  definitions(fields.map(({ name, type, meaning }) => [code(name), type, meaning]))

function fieldsOf(schema: Schema) {
  const required: unknown[] = Array.isArray(schema.required) ? schema.required : []
  return Object.entries(membersOf(schema)).map(([name, member]) => {
    const { description = '', default: fallback } = member
    const isSaid = fallback === undefined || /\bDefault\b/.test(String(description))
    const meaning = `${withoutFamily(String(description))}${isSaid ? '' : ` Default ${fallback}.`}`.trim()
    return { name, type: formOf(member), isRequired: required.includes(name), meaning }
  })
}

/** The page names its family once. */
const withoutFamily = (text: string): string =>
  text.replace(/^A model whose `supported_endpoint_types` has `[\w-]+`\.$/, 'Of this family.')

/** The forms of a union with many, and the members of an object, are left to the meaning and to `/docs`. */
const MAX_FORMS = 2

const formOf = (member: Schema): string =>
  Array.isArray(member.anyOf) && member.anyOf.length > MAX_FORMS
    ? 'several forms'
    : typeOf(member, () => 'object').replace('object or object', 'object')
