/** A gateway with a day of calls behind it: four projects, three models, a provider that fails now and then. */
import { type ManualClock, manualClock } from '../../kit/clock.ts'
import { openConsole, type TestConsole } from './console.ts'

const STEP_MILLISECONDS = 900_000
const STEPS = 96

const PROJECTS = ['Search', 'Support assistant', 'Data science', 'Mobile app']
const behind = (model: string, prices: object) => ({ targets: [{ provider: 'sandbox', model }], prices })

export const SETTINGS = {
  providers: { backup: { base_url: 'http://127.0.0.1:9/v1', key: 'key' } },
  models: {
    'team/large': {
      ...behind('general', { input: 300, output: 1_200 }),
      context_tokens: 400_000,
      limits: { max_tokens: { maximum: 32_000 } },
    },
    'team/small': { ...behind('compact', { input: 25, output: 100 }), context_tokens: 128_000 },
    'team/embedding': behind('embedding', { input: 10, output: 0 }),
    'backup/large': {},
  },
}

/** More by day than by night, in whole calls. */
const callsAt = (step: number): number =>
  Math.round(5 + 4 * Math.sin((step / STEPS) * 2 * Math.PI - 1) + 2 * Math.sin(step * 1.7))

export async function openDay(): Promise<TestConsole> {
  const clock: ManualClock = manualClock(Date.now() - STEPS * STEP_MILLISECONDS)
  const opened = await openConsole(SETTINGS, { clock })
  const secrets: string[] = []
  for (const name of PROJECTS) {
    const { project_id } = await opened.admin<{ project_id: string }>('/projects', { json: { name } })
    const json = { name: `${name} service`, project_id }
    secrets.push((await opened.admin<{ secret: string }>('/tokens', { json })).secret)
  }
  let total = 0
  for (let step = 0; step < STEPS; step++) {
    for (let call = 0; call < callsAt(step); call++) await callOf(opened, { number: total++, secrets, clock })
    // Before the clock goes on: an hour that is summed up takes no more calls.
    await opened.recorded(total)
    clock.advance(STEP_MILLISECONDS)
  }
  return opened
}

/** The same calls in every run. */
async function callOf(
  { port }: TestConsole,
  { number, secrets, clock }: { number: number; secrets: string[]; clock: ManualClock },
): Promise<void> {
  const secret = secrets[[0, 0, 1, 0, 2, 1, 3][number % 7] ?? 0] ?? ''
  const headers = { authorization: `Bearer ${secret}` }
  const model = number % 23 === 0 ? 'backup/large' : number % 3 === 0 ? 'team/small' : 'team/large'
  const isEmbedding = number % 5 === 4
  const pending = port.gateway.call(isEmbedding ? '/v1/embeddings' : '/v1/chat/completions', {
    headers,
    json: isEmbedding
      ? { model: 'team/embedding', input: 'A gatehouse' }
      : { model, messages: [{ role: 'user', content: `Question ${number}: how do I add a provider?` }] },
  })
  clock.advance(180 + ((number * 37) % 400) + (number % 29 === 0 ? 1_400 : 0))
  await (await pending).text()
}
