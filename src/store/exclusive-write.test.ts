import { expect, test } from 'bun:test'
import { createExclusiveWrites } from './exclusive-write.ts'

function setUp() {
  const started: string[] = []
  const ends = new Map<string, PromiseWithResolvers<void>>()
  const { write, writeAlone } = createExclusiveWrites<string>((work) => work('transaction'))
  const job = (name: string) => async () => {
    started.push(name)
    const end = Promise.withResolvers<void>()
    ends.set(name, end)
    await end.promise
    return name
  }
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  return { started, write, writeAlone, job, settle, end: (name: string) => ends.get(name) }
}

test('an exclusive write waits for the writes before it, and those after it wait for it', async () => {
  const { started, write, writeAlone, job, settle, end } = setUp()
  const calls = [write(job('one')), write(job('two')), writeAlone(job('alone')), write(job('three'))]
  await settle()
  expect(started).toEqual(['one', 'two'])
  end('two')?.resolve()
  await settle()
  expect(started).toEqual(['one', 'two'])
  end('one')?.resolve()
  await settle()
  expect(started).toEqual(['one', 'two', 'alone'])
  end('alone')?.resolve()
  await settle()
  expect(started).toEqual(['one', 'two', 'alone', 'three'])
  end('three')?.resolve()
  expect(await Promise.all(calls)).toEqual(['one', 'two', 'alone', 'three'])
})

test('two exclusive writes run one after the other, and with a write between them', async () => {
  const { started, write, writeAlone, job, settle, end } = setUp()
  void writeAlone(job('first'))
  void write(job('between'))
  void writeAlone(job('second'))
  for (const name of ['first', 'between', 'second']) {
    await settle()
    expect(started.at(-1)).toBe(name)
    end(name)?.resolve()
  }
})

test('a write that fails, exclusive or not, does not hold up the others', async () => {
  const { write, writeAlone, job, settle, end } = setUp()
  const failing = write(job('failing'))
  const alone = writeAlone(job('alone'))
  const last = write(job('last'))
  end('failing')?.reject(new Error('locked'))
  await expect(failing).rejects.toThrow('locked')
  await settle()
  end('alone')?.reject(new Error('full'))
  await expect(alone).rejects.toThrow('full')
  await settle()
  end('last')?.resolve()
  expect(await last).toBe('last')
})
