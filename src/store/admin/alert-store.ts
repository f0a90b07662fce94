/** Alerts to the operator that are not delivered yet: the same on every engine. */

import type { AuditDraft } from '../../spec/audit.ts'

/** Where an alert goes: each of them is delivered by itself. */
export type AlertChannel = 'webhook' | 'slack' | 'email'

/** `body`: the JSON text of the event. */
export type Alert = { alert_id: string; channel: AlertChannel; created_at: number; body: string; due_ms: number }

export type DueAlert = Alert & { attempts: number }

/** Until this time, in unix milliseconds, nothing more is alerted under this key, by whatever process. */
type AlertMark = { mark_key: string; until_ms: number; now_ms: number }

export type AlertStore = {
  add(alerts: readonly Alert[]): Promise<void>
  /**
   * Adds them and their mark in one transaction; false: the mark is set already, and nothing was added. `audit`: the row of
   * the audit log that is appended with them.
   */
  addOnce(mark: AlertMark, alerts: readonly Alert[], audit?: AuditDraft): Promise<boolean>
  /** Claims due alerts until the lease expires; no two claims get the same one. */
  claim(claim: { now_ms: number; until_ms: number; limit: number }): Promise<DueAlert[]>
  /** Counts an attempt after which the alert is due again. */
  postpone(alert_id: string, due_ms: number): Promise<void>
  /** After it was delivered, or given up. */
  remove(alert_id: string): Promise<void>
  /** When the next alert is due. */
  earliest(): Promise<number | null>
}
