import { afterEach, beforeEach, describe, expect, it } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnvironmentFile, withEnvironmentFile } from './environment-file.ts'

describe('an environment file', () => {
  it.each<[string, Record<string, string>]>([
    ['', {}],
    ['# a comment\n\n; another one\n', {}],
    ['A=1\nB=two words\r\nexport C=3\n', { A: '1', B: 'two words', C: '3' }],
    ['  A=  x  \nB=\n', { A: 'x', B: '' }],
    ['A=a=b#c $D ${E}', { A: 'a=b#c $D ${E}' }],
    ['A=\'it "is" # $x\'', { A: 'it "is" # $x' }],
    ['A="say \\"a\\\\b\\" \\$x"', { A: 'say "a\\b" $x' }],
    ['A=1\nA=2', { A: '2' }],
    ['\uFEFFA=1', { A: '1' }],
  ])('is read as systemd and Docker do: %j', (text, variables) => {
    expect(parseEnvironmentFile(text, 'env')).toEqual(variables)
  })

  it.each([
    ['A=1\nsk-secret', 'env:2 must be NAME=value, a comment or empty'],
    ['A=1\n\nB = sk-secret', 'env:3 must be NAME=value, a comment or empty'],
    ['1A=sk-secret', 'env:1 must be NAME=value, a comment or empty'],
    ['A="sk-secret', 'env:1 A: a quote has no end'],
    ["A='sk-secret' x", 'env:1 A: a quote has no end'],
  ])('is refused with the line, and without a value: %j', (text, message) => {
    expect(() => parseEnvironmentFile(text, 'env')).toThrow(new Error(message))
  })
})

describe('withEnvironmentFile', () => {
  let cwd: string
  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), 'gatehouse-env-'))
  })
  afterEach(() => rmSync(cwd, { recursive: true }))

  it('puts the variables of the file over those of the process', () => {
    writeFileSync(join(cwd, 'vars'), 'A=new\nB=more\n')
    const environment = { GATEHOUSE_ENV_FILE: 'vars', A: 'old', C: 'kept' }
    expect(withEnvironmentFile(environment, cwd)).toEqual({ ...environment, A: 'new', B: 'more' })
  })

  it('is the environment itself where no file is named', () => {
    const environment = { GATEHOUSE_ENV_FILE: '', A: '1' }
    expect(withEnvironmentFile(environment, cwd)).toBe(environment)
  })

  it('throws where the file is missing', () => {
    const message = 'GATEHOUSE_ENV_FILE: none cannot be read: there is no such file'
    expect(() => withEnvironmentFile({ GATEHOUSE_ENV_FILE: 'none' }, cwd)).toThrow(new Error(message))
  })
})
