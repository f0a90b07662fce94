/** Counts, erases and renames what is stored of an end user: the same on every engine. */

/** An end user as clients name it. Without `project_id`: in every project and in none. */
export type EndUser = { end_user: string; project_id?: string | undefined }

/** How many of each kind. `tasks` are those that have ended. */
export type EndUserRows = {
  requests: number
  contents: number
  responses: number
  conversations: number
  tasks: number
}

/** What an erasure leaves. */
export type EndUserRest = {
  /** Tasks that have not ended: a provider may work on them. */
  unfinished_tasks: number
  ledger_entries: number
}

export type EndUserStore = {
  count(user: EndUser): Promise<EndUserRows & EndUserRest>
  /**
   * Erases one batch: rows of the request log with contents, feedback and tags; responses; conversations with an item of
   * the end user; the requests, files and names of ended tasks, as their deletion does. All 0: nothing is left.
   */
  erase(user: EndUser, now: number): Promise<EndUserRows>
  /**
   * Writes `pseudonym`, which nobody else has, in place of the name: in the ledger, its sums and budgets, in one
   * transaction, so that sums and budgets stay those of the entries. Returns how many entries have changed.
   */
  pseudonymise(user: EndUser, as: { pseudonym: string; now_ms: number }): Promise<number>
}
