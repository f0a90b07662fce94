/** Alerts to the operator: those that are not delivered yet, and their history. The same on every engine. */
import type { AuditDraft } from '../../spec/audit.ts'
import type { StorePage } from '../page.ts'

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

/** An event that holds until `open_until_ms`, unless it is raised again before; times in unix milliseconds. */
type RaisedEvent = Pick<AlertHistoryRow, 'alert_id' | 'type' | 'message' | 'data' | 'open_until_ms'> & {
  /** The same key before it has ended is the same row. */
  key: string
  now_ms: number
}

export type AlertHistoryRow = {
  alert_id: string
  type: string
  message: string
  data: object
  /** How often it was recorded, at most once a minute by each process. */
  times: number
  first_ms: number
  last_ms: number
  open_until_ms: number
  /** When an operator closed it; null: nobody did. */
  closed_ms: number | null
  closed_by: string | null
}

export type AlertHistoryStore = {
  /** Keeps the newest 10,000 rows of 90 days. */
  record(event: RaisedEvent): Promise<void>
  /** Newest first. `is_open` absent: all. */
  page(options: {
    is_open?: boolean
    now_ms: number
    type?: string
    limit: number
    after?: string[]
  }): Promise<StorePage<AlertHistoryRow>>
  find(alert_id: string): Promise<AlertHistoryRow | undefined>
  /** Undefined: there is none, or it is not open. */
  close(alert_id: string, by: { now_ms: number; by: string }, audit: AuditDraft): Promise<AlertHistoryRow | undefined>
}
