/** The routes of the manual. The first request for a page reads the files and loads the code. */
import { prefersType } from '../http/accept.ts'
import type { Route } from '../http/context.ts'
import { queryOf } from '../http/request-parts.ts'
import { GatewayError } from '../spec/error.ts'
import type { Operation } from '../spec/operation.ts'
import { loadImage, type ManualFile } from './manual/load-manual.ts'
import type { Manual } from './manual/manual.ts'
import { htmlPage } from './pages.ts'

type ManualParts = { load: () => Promise<ManualFile[]>; version: string }

const MAX_QUERY_CHARACTERS = 200

const HTML = 'text/html'
const NO_SNIFFING = { 'x-content-type-options': 'nosniff' }
const LLMS_TXT = {
  summary: 'The pages of the manual, for agents',
  description: 'A list of links, in the format of llms.txt.',
  media: 'text/plain',
}

export function manualRoutes({ load, version }: ManualParts): Route[] {
  let manual: Promise<Manual> | undefined
  const open = (): Promise<Manual> => {
    manual ??= Promise.all([import('./manual/manual.ts'), load()]).then(([{ createManual }, files]) =>
      createManual(files),
    )
    // A failure is not cached: the next request tries again.
    manual.catch(() => {
      manual = undefined
    })
    return manual
  }
  type Page = Pick<Operation, 'summary' | 'description'>
  const route = (path: string, { media, ...page }: Page & { media: string }, handle: Route['handle']): Route => ({
    method: 'GET',
    path,
    public: true,
    operation: { tag: 'Gateway', ...page, media: [media] },
    handle,
  })

  return [
    route('/manual', { summary: 'The manual', description: 'Its index, with a search.', media: HTML }, async () => {
      const { index } = await open()
      return htmlPage(index, version)
    }),
    {
      ...route('/manual/search', { summary: 'Search the manual', media: HTML }, async ({ request }) => {
        const query = (queryOf(request).get('q') ?? '').slice(0, MAX_QUERY_CHARACTERS)
        const { search } = await open()
        return htmlPage((base) => search(query, base), version)
      }),
      hidden: true,
    },
    {
      ...route(
        '/manual/:page',
        { summary: 'A page of the manual', media: HTML },
        async ({ request, params: { page = '' } }) => {
          const { page: html, markdown } = await open()
          const name = page.replace(/\.md$/, '')
          const text = markdown(name)
          if (text === undefined)
            throw new GatewayError('unknown_url', `The manual has no page named ${JSON.stringify(name)}.`)
          const asMarkdown = page !== name || prefersType(request.headers.get('accept'), 'text/markdown', HTML)
          return asMarkdown ? markdownResponse(text) : htmlPage((base) => html(name, base) ?? '', version)
        },
      ),
      hidden: true,
    },
    {
      ...route(
        '/manual/images/:name',
        { summary: 'A picture of the manual', media: 'image/png' },
        async ({ params: { name = '' } }) => {
          const bytes = await loadImage(name)
          if (!bytes) throw new GatewayError('unknown_url', `The manual has no picture named ${JSON.stringify(name)}.`)
          const headers = { 'content-type': 'image/png', 'cache-control': 'public, max-age=3600', ...NO_SNIFFING }
          return new Response(bytes, { headers })
        },
      ),
      hidden: true,
    },
    route('/llms.txt', LLMS_TXT, async () => {
      const { list } = await open()
      return plainResponse(list(), 'text/plain')
    }),
  ]
}

const markdownResponse = (text: string): Response => plainResponse(text, 'text/markdown')

const plainResponse = (text: string, type: string): Response =>
  new Response(text, {
    headers: { 'content-type': `${type}; charset=utf-8`, vary: 'accept', ...NO_SNIFFING },
  })
