/** Tokens and projects of a running gateway, changed by its admin API. */
import { chooseProject, chooseToken, type TokenReference } from '../accounts/choose.ts'
import type { Projects } from '../accounts/projects.ts'
import type { Tokens } from '../accounts/tokens.ts'
import type { Project, Token } from '../spec/token.ts'
import { type AdminApi, ChangedMeanwhile } from './admin-api.ts'

export type AccountTokens = Pick<Tokens, 'issue' | 'list' | 'choose' | 'update' | 'revoke' | 'rotate'>
export type AccountProjects = Pick<Projects, 'create' | 'list' | 'choose' | 'update' | 'delete'>

const MAX_ATTEMPTS = 5

/** The gateway's answers have the types of its OpenAPI document. */
export function remoteProjects(api: AdminApi): AccountProjects {
  const list = async () => (await api.all('/projects')) as Project[]
  const choose = async (which: string) => chooseProject(await list(), which)
  const one = (body: unknown) => body as Project
  return {
    list,
    choose,
    create: async (order) => one((await api.call('/projects', { method: 'POST', body: order })).body),
    async update(which, change) {
      const path = `/projects/${(await choose(which)).project_id}`
      return one(await edit(api, path, (present) => (typeof change === 'function' ? change(one(present)) : change)))
    },
    async delete(which) {
      const { project_id } = await choose(which)
      return one((await api.call(`/projects/${project_id}`, { method: 'DELETE' })).body)
    },
  }
}

export function remoteTokens(api: AdminApi): AccountTokens {
  const list: Tokens['list'] = async ({ project_id } = {}) => {
    const filter = project_id === undefined ? '' : `?project_id=${encodeURIComponent(project_id)}`
    return (await api.all(`/tokens${filter}`)) as Token[]
  }
  const choose = async (which: string) => chooseToken(await list(), which)
  const issued = (body: Record<string, unknown>) => {
    const { secret, ...token } = body
    return { token: token as Token, secret: String(secret) }
  }
  const pathOf = async (which: TokenReference) =>
    `/tokens/${(typeof which === 'string' ? await choose(which) : which).token_id}`
  return {
    list,
    choose,
    issue: async (order) => issued((await api.call('/tokens', { method: 'POST', body: order })).body),
    async update(which, change) {
      const changed = (present: unknown) => (typeof change === 'function' ? change(present as Token) : change)
      return (await edit(api, await pathOf(which), changed)) as Token
    },
    revoke: async (which) => (await api.call(await pathOf(which), { method: 'DELETE' })).body as Token,
    async rotate(which, { overlap_seconds = 0 } = {}) {
      const sent = { method: 'POST', body: { overlap_seconds } }
      return issued((await api.call(`${await pathOf(which)}/rotate`, sent)).body)
    },
  }
}

/** Changes what was read: where somebody else changes it meanwhile, it is read again. */
async function edit(api: AdminApi, path: string, changed: (present: unknown) => unknown): Promise<unknown> {
  for (let attempt = 1; ; attempt++) {
    const { body, etag } = await api.call(path)
    try {
      const sent = { method: 'PATCH', body: changed(body), ...(etag !== undefined && { if_match: etag }) }
      return (await api.call(path, sent)).body
    } catch (error) {
      if (!(error instanceof ChangedMeanwhile) || attempt === MAX_ATTEMPTS) throw error
    }
  }
}
