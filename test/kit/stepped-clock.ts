/**
 * Preloaded into a gateway under test: its clock differs from that of the machine by the milliseconds in a file, which the
 * test changes while it runs. The steady clock and timers are not affected, as when the machine's clock is set.
 */
import { readFileSync } from 'node:fs'

const READ_MILLISECONDS = 20

const path = process.env.GATEHOUSE_TEST_CLOCK ?? ''
const machineNow = Date.now
let offset = 0

function read(): void {
  try {
    offset = Number(readFileSync(path, 'utf8')) || 0
  } catch {
    // Not written yet: the machine's clock.
  }
}

read()
setInterval(read, READ_MILLISECONDS).unref()
Date.now = () => machineNow() + offset
