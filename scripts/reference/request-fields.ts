/** The tables of request fields inside hand-written pages of the manual, from the schemas that check the requests. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TSchema } from 'typebox'
import { EmbeddingRequest } from '../../src/spec/embedding-request.ts'
import { ImageRequest } from '../../src/spec/image-request.ts'
import { ModerationRequest } from '../../src/spec/moderation-request.ts'
import { RerankRequest } from '../../src/spec/rerank-request.ts'
import { ThreeDRequest } from '../../src/spec/three-d-request.ts'
import { VideoRequest } from '../../src/spec/video-request.ts'
import { describedBy, membersOf, type Schema, typeOf } from './schema.ts'
import { code, table } from './table.ts'

const MANUAL = join(import.meta.dir, '../../docs/manual')
const START = '<!-- Generated from the schema by `npm run docs:reference`. -->'
const END = '<!-- End of the generated table. -->'

const PAGES: Record<string, TSchema> = {
  'reference/3d.md': ThreeDRequest,
  'reference/embeddings.md': EmbeddingRequest,
  'reference/images.md': ImageRequest,
  'reference/moderations.md': ModerationRequest,
  'reference/rerank.md': RerankRequest,
  'reference/videos.md': VideoRequest,
}

/** Each page as it should be: what stands around its table stays. */
export const pagesWithFields = () =>
  Object.entries(PAGES).map(([path, schema]) => {
    const page = readFileSync(join(MANUAL, path), 'utf8')
    const [start, end] = [page.indexOf(START), page.indexOf(END)]
    if (start === -1 || end === -1) throw new Error(`${path} needs the lines ${START} and ${END}.`)
    return { path, text: `${page.slice(0, start)}${START}\n\n${fieldsTable(schema as Schema)}\n\n${page.slice(end)}` }
  })

function fieldsTable(schema: Schema): string {
  const required = Array.isArray(schema.required) ? schema.required : []
  return table(
    ['field', 'type', 'default', 'meaning'],
    Object.entries(membersOf(schema)).map(([name, member]) => {
      const { meaning, fallback } = describedBy(member)
      return [code(name), formOf(member), required.includes(name) ? 'required' : fallback, meaning]
    }),
  )
}

/** The forms of a union with many are in its meaning. */
const MAX_FORMS = 2

const formOf = (member: Schema): string =>
  Array.isArray(member.anyOf) && member.anyOf.length > MAX_FORMS ? 'several forms' : typeOf(member)
