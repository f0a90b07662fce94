/** The audit log: who changed what, from where, when, before and after. Never a secret. */
import Type from 'typebox'
import { orNull, titled } from './fields.ts'

/** Who makes a change: for the audit log. */
export type AuditOrigin = {
  /** `environment`, `admin:adm_...`, `login:ses_...`, `oidc:<subject>`, `cli:<user of the operating system>`, or `gateway`. */
  actor: string
  /** The client's address. */
  address?: string
  request_id?: string
}

/** Changes that the gateway makes by itself. */
export const BY_GATEWAY: AuditOrigin = { actor: 'gateway' }

/** What happened to which object. Of two states of an object, only the members that differ are stored. */
export type AuditEvent = {
  /** Such as `token.create`. */
  action: string
  object_type: string
  object_id: string
  /** The project that the object belongs to: its project_admin sees the row. */
  project_id?: string | null
  before?: unknown
  after?: unknown
}

export type AuditDraft = AuditOrigin & AuditEvent & { at_ms: number }

const text = (description: string) => orNull(Type.String(), description)

export const AuditRow = titled('AuditRow', {
  sequence: Type.Integer({ description: 'From 1, without gaps.' }),
  at_ms: Type.Integer({ description: 'Unix milliseconds.' }),
  actor: Type.String({ description: 'Such as `admin:adm_...`, `environment`, `cli:<user>` or `gateway`.' }),
  action: Type.String({ description: 'Such as `token.create`.' }),
  object_type: Type.String(),
  object_id: Type.String(),
  project_id: text('The project that the object belongs to.'),
  address: text('The address of the client.'),
  request_id: text('Of the request that made the change.'),
  before: Type.Unknown({ description: 'The members that changed, as they were; null: it did not exist.' }),
  after: Type.Unknown({ description: 'The same, as they are now; null: it is gone.' }),
  previous_hash: Type.String({ description: 'The hash of the row before.' }),
  hash: Type.String({ description: 'SHA-256 of this row and of previous_hash.' }),
})
export type AuditRow = Type.Static<typeof AuditRow>
