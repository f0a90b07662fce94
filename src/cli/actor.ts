/** Who runs a command, for the audit log. */
import { userInfo } from 'node:os'
import type { AuditOrigin } from '../spec/audit.ts'

/** Of the operating system; where the runtime knows no name, as in some containers, the number. */
export function commandLineActor(): AuditOrigin {
  try {
    const { username, uid } = userInfo()
    return { actor: `cli:${username === 'unknown' ? uid : username}` }
  } catch {
    return { actor: `cli:${process.getuid?.() ?? 'unknown'}` }
  }
}
