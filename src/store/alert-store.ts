/** Alerts to the operator that are not delivered yet: the same on every engine. */

/** `body`: the JSON text that is sent. */
export type Alert = { alert_id: string; created_at: number; body: string; due_ms: number }

export type DueAlert = Alert & { attempts: number }

export type AlertStore = {
  add(alert: Alert): Promise<void>
  /** Claims due alerts until the lease expires; no two claims get the same one. */
  claim(claim: { now_ms: number; until_ms: number; limit: number }): Promise<DueAlert[]>
  /** Counts an attempt after which the alert is due again. */
  postpone(alert_id: string, due_ms: number): Promise<void>
  /** After it was delivered, or given up. */
  remove(alert_id: string): Promise<void>
  /** When the next alert is due. */
  earliest(): Promise<number | null>
}
