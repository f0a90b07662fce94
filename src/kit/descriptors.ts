/** How many file descriptors this process has open, and how many it may have. */
import { readdirSync, readFileSync, statSync } from 'node:fs'

/** Undefined where the system does not tell. */
export function openDescriptors(): number | undefined {
  try {
    // Since Linux 6.2 the size is the number of open descriptors: no list of thousands has to be read.
    const { size } = statSync('/proc/self/fd')
    return size > 0 ? size : readdirSync('/proc/self/fd').length
  } catch {
    return countOf('/dev/fd')
  }
}

function countOf(directory: string): number | undefined {
  try {
    return readdirSync(directory).length
  } catch {
    return undefined
  }
}

/** The soft limit, which the runtime raises to the hard limit at start. Undefined where there is none, or it is unknown. */
export function descriptorLimit(): number | undefined {
  try {
    const soft = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]
    return soft === undefined ? undefined : Number(soft)
  } catch {
    return undefined
  }
}
