/** The bound of a conversation's length, for items that are added without a response. */
import { expect, test } from 'bun:test'
import { manualClock } from '../../../test/kit/clock.ts'
import { NO_QUOTA } from '../../../test/kit/quota.ts'
import { createLog } from '../../kit/log.ts'
import { openStore } from '../../store/open-store.ts'
import { createConversations } from './conversations.ts'
import { MAX_CHARACTERS } from './stored-responses.ts'

test.each([
  [MAX_CHARACTERS, 'added'],
  [MAX_CHARACTERS + 1, 'context_length_exceeded'],
])('items after %d characters: %s', async (text_length, expected) => {
  const clock = manualClock()
  const log = createLog({ clock, level: 'error', pretty: false, write: () => {} })
  const store = await openStore({ url: 'sqlite::memory:' })
  const conversations = createConversations({
    store: {
      ...store.conversations,
      async find(key) {
        const found = await store.conversations.find(key)
        return found && { ...found, text_length }
      },
    },
    settings: () => ({ keep_days: 1 }),
    quota: NO_QUOTA,
    clock,
    log,
  })
  const { conversation_id } = await conversations.create({ token_id: 't', metadata: {}, items: [] })
  const place = { conversation_id, token_id: 't' }
  const outcome = await conversations
    .addItems(place, { items: [{ type: 'message', role: 'user', content: 'x' }] })
    .then(
      () => 'added',
      ({ code }) => code,
    )
  expect(outcome).toBe(expected)
  // It is not left locked.
  const next = conversations.removeItem(place, 'none')
  await expect(next).rejects.toMatchObject({ code: 'conversation_item_not_found' })
  await store.close()
})
