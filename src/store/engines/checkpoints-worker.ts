/** The thread of the checkpoints: receives the path of a database, and copies the pages of its log into it. */
import { Database } from 'bun:sqlite'
import { answerQuestions } from '../../kit/idle-worker.ts'

answerQuestions((path: string): null => {
  const file = new Database(path, { readwrite: true, create: false })
  try {
    file.run('PRAGMA wal_checkpoint(PASSIVE)')
  } finally {
    file.close()
  }
  return null
})
