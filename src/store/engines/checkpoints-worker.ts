/** The thread of the checkpoints: receives the path of a database, and copies the pages of its log into it. */
import { Database } from 'bun:sqlite'
import { answerQuestions } from '../../kit/idle-worker.ts'

/** Commits go on meanwhile, and their pages are left; only without any does SQLite begin its log anew. */
const MAX_PASSES = 3

/** Frames of the log, and how many of them are in the database. */
type Progress = { log: number; checkpointed: number }

answerQuestions((path: string): null => {
  const file = new Database(path, { readwrite: true, create: false })
  try {
    for (let pass = 0; pass < MAX_PASSES; pass++) {
      const progress = file.query<Progress, []>('PRAGMA wal_checkpoint(PASSIVE)').get()
      if (!progress || progress.checkpointed >= progress.log) break
    }
  } finally {
    file.close()
  }
  return null
})
