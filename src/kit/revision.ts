/** Counts changes, so that whoever has decided something by what has changed decides it again. */
export type Revision = { current: number }
