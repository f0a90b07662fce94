/**
 * Preloaded into a gateway under test: its clock differs from that of the machine by the milliseconds in a shared file,
 * which the test changes while it runs. As when the machine's clock is set, all processes that share the file see it at
 * once, and neither the steady clock nor timers are affected.
 */
import { closeSync, openSync, writeSync } from 'node:fs'

const BYTES = 8

/** Creates the file, or sets the clocks that read it. */
export function setClock(path: string, offset_ms: number): void {
  const file = openSync(path, 'a+')
  closeSync(file)
  const opened = openSync(path, 'r+')
  writeSync(opened, new Uint8Array(new Float64Array([offset_ms]).buffer), 0, BYTES, 0)
  closeSync(opened)
}

const path = process.env.GATEHOUSE_TEST_CLOCK
if (path !== undefined) {
  const offset = new Float64Array(Bun.mmap(path).buffer, 0, 1)
  const machineNow = Date.now
  Date.now = () => machineNow() + (offset[0] ?? 0)
}
