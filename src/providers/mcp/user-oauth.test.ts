import { expect, it } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { createUserOAuth } from './user-oauth.ts'

it('requests for one server leave those for others', async () => {
  let sent = 0
  const fetch = () => {
    sent++
    return new Promise<never>(() => {})
  }
  const oauth = createUserOAuth({ clock: manualClock(), log: {} as never, fetch })
  const begin = (name: string) =>
    oauth.begin({ name, url: 'https://mcp.example.com/mcp', oauth_user: {} }, 'https://gatehouse.example.com/').then(
      () => 'begun',
      ({ code }) => code,
    )
  // All but one of them wait for ever.
  expect(await Promise.race(Array.from({ length: 17 }, () => begin('slow')))).toBe('server_is_overloaded')
  void begin('other')
  for (let turn = 0; turn < 100 && sent < 17; turn++) await new Promise((resolve) => setImmediate(resolve))
  expect(sent).toBe(17)
})
