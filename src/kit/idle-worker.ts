/** A worker thread that starts with its first question and ends when it is idle. Questions may overlap. */
import { parentPort, type Worker } from 'node:worker_threads'
import type { Clock } from './clock.ts'

/** `isPatient`: a question has its answer however long that takes. Without it, none waits longer than `idleMilliseconds`. */
type IdleWorkerParts = { start(): Worker; idleMilliseconds: number; isPatient?: true; clock: Clock }

export function createIdleWorker<Question, Answer>({ start, idleMilliseconds, isPatient, clock }: IdleWorkerParts) {
  let worker: Worker | undefined
  let cancelIdle = () => {}
  let lastTicket = 0
  const waiting = new Map<number, PromiseWithResolvers<Answer>>()

  function stop(reason: unknown): void {
    cancelIdle()
    void worker?.terminate()
    worker = undefined
    for (const { reject } of waiting.values()) reject(reason)
    waiting.clear()
  }

  function stopWhenIdle(): void {
    cancelIdle()
    cancelIdle = clock.after(idleMilliseconds, () => {
      if (isPatient && waiting.size > 0) stopWhenIdle()
      else stop(new Error('the worker was idle'))
    })
  }

  function startWorker(): Worker {
    const fresh = start()
    fresh.unref()
    fresh.on('message', ({ ticket, answer }: { ticket: number; answer: Answer }) => {
      waiting.get(ticket)?.resolve(answer)
      waiting.delete(ticket)
    })
    fresh.on('error', (cause) => {
      if (worker === fresh) stop(cause)
    })
    return fresh
  }

  return {
    /** Rejects with the worker's error, or with the reason of `stop`. */
    ask(question: Question): Promise<Answer> {
      stopWhenIdle()
      worker ??= startWorker()
      const ticket = ++lastTicket
      const asked = Promise.withResolvers<Answer>()
      waiting.set(ticket, asked)
      worker.postMessage({ ticket, question })
      return asked.promise
    },
    stop,
  }
}

/** The side of the thread. */
export function answerQuestions<Question, Answer>(answer: (question: Question) => Answer): void {
  parentPort?.on('message', ({ ticket, question }: { ticket: number; question: Question }) => {
    parentPort?.postMessage({ ticket, answer: answer(question) })
  })
}
