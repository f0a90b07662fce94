/** Who runs a command, for the audit log. */
import { userInfo } from 'node:os'
import type { AuditOrigin } from '../spec/audit.ts'

/** Of the operating system; an id without a name, as in some containers, is shown as a number. */
export function commandLineActor(): AuditOrigin {
  try {
    return { actor: `cli:${userInfo().username}` }
  } catch {
    return { actor: `cli:${process.getuid?.() ?? 'unknown'}` }
  }
}
