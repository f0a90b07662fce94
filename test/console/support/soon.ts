/** Expectations that come true after a while: a page is drawn some time after the act that changes it. */
import { expect } from 'bun:test'
import type { Locator } from 'playwright-core'
import { WAIT_MILLISECONDS } from './chromium.ts'

const EVERY_MILLISECONDS = 25

/** Reads until what is read equals this, as `toEqual` has it. Throws its error after a while. */
export async function expectSoon(read: () => Promise<unknown>, expected: unknown): Promise<void> {
  const end = performance.now() + WAIT_MILLISECONDS
  for (;;) {
    const value = await read()
    try {
      return expect(value).toEqual(expected)
    } catch (difference) {
      if (performance.now() > end) throw difference
    }
    await Bun.sleep(EVERY_MILLISECONDS)
  }
}

/** Empties a field: Playwright presses a key for it, which goes elsewhere while a dialog gives the focus of what is gone back. */
export const cleared = (field: Locator): Promise<void> =>
  expectSoon(async () => {
    await field.fill('')
    return await field.inputValue()
  }, '')
