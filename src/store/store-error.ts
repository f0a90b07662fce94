/** A store that cannot be opened, in words for the operator: what was wrong, where, and what would be right. */
export class StoreError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'StoreError'
  }
}
