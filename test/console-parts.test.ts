/** Functions of the console that need no browser: forms of accounts, samples, and who may act where. */
import { describe, expect, it, spyOn } from 'bun:test'
import { send } from '../console/src/api/client.ts'
import { isLoginNeeded, loggedIn } from '../console/src/api/login-state.ts'
import type { Administrator, AdminModel, Token } from '../console/src/api/types.ts'
import { projectOfCall, setOwnProjects } from '../console/src/lib/project.ts'
import { changesOf, draftOf, endUserText, fieldsOf } from '../console/src/pages/access/draft.ts'
import { firstModel } from '../console/src/pages/access/first-model.ts'
import { samplesOf } from '../console/src/pages/models/samples.ts'
import { mayManage } from '../console/src/shell/page.ts'

const token = (fields: Partial<Token>) =>
  ({
    name: 'a',
    project_id: null,
    models: ['*'],
    families: null,
    guards: [],
    labels: {},
    rate_limits: {},
    budgets: [],
    end_users: {},
    expires_at: null,
    allowed_addresses: null,
    ...fields,
  }) as unknown as Token

describe('the form of an account', () => {
  it('shows labels of an import without sending them, and trims values', () => {
    const before = draftOf(token({ labels: { team: 'search', 'import/spend': '5' } }))
    expect(before).toMatchObject({ labels: 'team=search', importLabels: ['import/spend=5'] })
    expect(changesOf(before, { ...before, labels: ' team =  maps \n' })).toEqual({ labels: { team: 'maps' } })
    expect(fieldsOf({ ...before, labels: 'a=b=c' }).labels).toEqual({ a: 'b=c' })
  })

  it('says which budgets of end users only warn', () => {
    const budgets = [
      { amount: 5, window: 'day' as const, soft: true },
      { amount: 9, window: 'month' as const },
    ]
    expect(endUserText({ budgets })).toMatch(/^[^,]*5[^,]* a day \(only warns\), [^,]*9[^,]* a month$/)
  })
})

describe('the model of a first call', () => {
  const model = (id: string, failures = 0, is_disabled = false) =>
    ({
      id,
      is_disabled,
      targets: [{ health: { state: 'available', consecutive_failures: failures } }],
    }) as unknown as AdminModel
  const models = [model('acme/off', 0, true), model('acme/broken', 1), model('acme/well'), model('other/well')]

  it('is one that the token and its project may call, and that does not fail', () => {
    expect(firstModel(models, [token({})])).toBe('acme/well')
    expect(firstModel(models, [token({}), token({ models: ['other/*'] })])).toBe('other/well')
    expect(firstModel(models, [token({ models: ['acme/b*'] })])).toBe('acme/broken')
  })

  it('is none where the token may call none', () => {
    expect(firstModel(models, [token({ models: ['acme/off'] })])).toBeUndefined()
    expect(firstModel(models, [token({ families: ['embeddings'] })])).toBeUndefined()
  })
})

describe('the samples of speech', () => {
  const parts = { origin: 'http://127.0.0.1', model: 'acme/tts' }
  const textOf = (speech?: { characters: null; voices: string[] | null; formats: string[] | null }) =>
    samplesOf('audio-speech', { ...parts, speech }).map(({ text }) => text)

  it('have a voice and a format of the model, and write the file', () => {
    for (const text of textOf({ characters: null, voices: ['vera', 'otto'], formats: ['wav', 'opus'] })) {
      expect(text).toContain('"vera"')
      expect(text).toContain('speech.wav')
    }
    const [curl] = textOf({ characters: null, voices: null, formats: null })
    expect(curl).toEndWith("' \\\n  --output speech.mp3")
    expect(curl).not.toContain('response_format')
  })
})

describe('a person of several projects', () => {
  const memberships = [
    { project_id: 'proj_a', role: 'project_admin' as const },
    { project_id: 'proj_b', role: 'project_member' as const },
  ]
  const me = { role: 'project_admin', project_id: 'proj_a', memberships, rights: ['read', 'manage'] } as Administrator

  it('manages the projects that they administer, whichever is chosen', () => {
    expect(mayManage(me, 'proj_a')).toBe(true)
    expect(mayManage(me, 'proj_b')).toBe(false)
    const inOther = { ...me, role: 'project_member', project_id: 'proj_b', rights: ['read'] } as Administrator
    expect(mayManage(inOther, 'proj_a')).toBe(true)
    expect(mayManage({ ...me, memberships: [] }, 'proj_c')).toBe(true)
  })

  it('calls in the project that a call names, where they are in it', () => {
    const stored = globalThis.sessionStorage
    Object.defineProperty(globalThis, 'sessionStorage', { value: { getItem: () => 'proj_a' }, configurable: true })
    try {
      setOwnProjects(['proj_a', 'proj_b'])
      expect(projectOfCall([undefined, 'proj_b'])).toBe('proj_b')
      expect(projectOfCall(['proj_other'])).toBe('proj_a')
      setOwnProjects([])
      expect(projectOfCall(['proj_b'])).toBe('proj_a')
    } finally {
      Object.defineProperty(globalThis, 'sessionStorage', { value: stored, configurable: true })
    }
  })
})

describe('a call that has lost its session', () => {
  it('is made again after the login, and asks for no second one where the login came before its answer', async () => {
    const answers = [Promise.withResolvers<Response>(), Promise.withResolvers<Response>()]
    let sent = 0
    const given = () => answers[sent++]?.promise ?? Promise.resolve(new Response('{}'))
    const fetched = spyOn(globalThis, 'fetch').mockImplementation(given as unknown as typeof fetch)
    try {
      setOwnProjects(['proj_a'])
      const [first, late] = [1, 2].map(() => send('GET /admin/v1/models', { project: 'proj_a' }))
      answers[0]?.resolve(new Response('{}', { status: 401 }))
      for (let turn = 0; turn < 50 && !isLoginNeeded(); turn++) await new Promise(setImmediate)
      loggedIn()
      answers[1]?.resolve(new Response('{}', { status: 401 }))
      expect([(await first)?.status, (await late)?.status]).toEqual([200, 200])
      expect([isLoginNeeded(), sent]).toEqual([false, 4])
    } finally {
      fetched.mockRestore()
    }
  })
})
