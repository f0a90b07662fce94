/**
 * The scripts that count rate limits in Valkey. Every process writes its own share of each part of a window, so that it can
 * replace what it has counted if it does not know whether a script was executed.
 *
 * Keys. `meta`: a hash with the `generation` of all counters, the `time` of all windows in milliseconds, the `wall` clock of
 * the server when that was written, the number of `processes`, and of each its `session:<process>` and the number of its
 * scripts, `count:<process>`. A window: a hash with its
 * `total`, its `oldest` and `newest` part, and `<part>` = `<amount> <process>=<amount> …`. Open calls: a hash with
 * `<process>` = `<calls> <until>`.
 *
 * Arguments of all but the first: process, session, generation, the time as the process knows it.
 */
import { WINDOW_PARTS } from './window.ts'

/** What a process counts of open calls is valid for so long after it was confirmed. */
const OPEN_CALLS_VALID_MS = 4_000

/** The server's clock may differ by so much from the time of the windows before it counts as set. */
const STEP_MS = 5_000
/** Without a script for so long, no process was alive, and the server's clock tells how much time has passed. */
const IDLE_MS = 2_000
/** A key outlives what it counts by this, since the server expires it by its own clock. */
const SPARE_MS = 60_000
const META_MS = 172_800_000
/** Beyond it, a new generation forgets those that have ended. */
const MOST_PROCESSES = 1_000

const COMMON = `
-- Arguments of commands are written with all digits; an answer must be a string, or loses its fraction.
local function text(number) return string.format('%.17g', number) end
local clock = redis.call('TIME')
local wall = clock[1] * 1000 + math.floor(clock[2] / 1000)
`

/**
 * Begins a session of a process. Arguments: its number and its generation or empty, the time as it knows it, a name for a
 * new generation, how many of its scripts were answered: if fewer are known, the server has lost data. Answers: generation,
 * number, session, time.
 */
export const HELLO = `${COMMON}
local known = redis.call('HMGET', KEYS[1], 'generation', 'time', 'wall', 'processes', 'count:' .. ARGV[1])
local generation, time = known[1], tonumber(ARGV[3])
local is_same = generation == ARGV[2]
local is_lost = is_same and tonumber(known[5] or 0) < tonumber(ARGV[5])
if not generation or is_lost or tonumber(known[4]) > ${MOST_PROCESSES} then
  if generation then time = math.max(time, tonumber(known[2])) end
  generation, is_same = ARGV[4], false
  redis.call('DEL', KEYS[1])
elseif is_same then
  time = math.max(time, tonumber(known[2]))
else
  time = tonumber(known[2])
  if wall - known[3] > ${IDLE_MS} then time = time + wall - known[3] end
end
local process = ARGV[1]
if not is_same then process = tostring(redis.call('HINCRBY', KEYS[1], 'processes', 1)) end
local session = wall * 1000 + redis.call('HINCRBY', KEYS[1], 'sessions', 1) % 1000
redis.call('HSET', KEYS[1], 'generation', generation, 'time', time, 'wall', wall, 'session:' .. process, text(session))
redis.call('PEXPIRE', KEYS[1], ${META_MS})
return {generation, process, text(session), text(time)}
`

/** Sets `time`; answers `over` where the session is not that of the process any more. */
const BEGIN = `${COMMON}
local process = ARGV[1]
local meta = redis.call('HMGET', KEYS[1], 'generation', 'session:' .. process, 'time', 'wall', 'count:' .. process)
if meta[1] ~= ARGV[3] or meta[2] ~= ARGV[2] then return {'over'} end
local time = math.max(tonumber(meta[3]), tonumber(ARGV[4]))
if wall - meta[4] - (time - meta[3]) > ${STEP_MS} then
  redis.call('DEL', KEYS[1]) -- the server's clock was set, and may have expired what counts
  return {'over'}
end
redis.call('HSET', KEYS[1], 'time', time, 'wall', wall, 'count:' .. process, tonumber(meta[5] or 0) + 1)
if wall - wall % 60000 ~= meta[4] - meta[4] % 60000 then redis.call('PEXPIRE', KEYS[1], ${META_MS}) end

local function lastGone(length) return math.floor((time - length) / (length / ${WINDOW_PARTS})) - 1 end

local OWN = '^(.-) ' .. process .. '=(%S+)(.*)$'

-- The sum of a part, what this process has of it, and the text of all others.
local function read(value)
  local sum, rest = string.match(value, '^(%S+)(.*)$')
  local before, own, after = string.match(rest, OWN)
  if own then return tonumber(sum), tonumber(own), before .. after end
  return tonumber(sum), 0, rest
end
local function written(sum, own, rest)
  if own == 0 then return sum .. rest end
  return sum .. rest .. ' ' .. process .. '=' .. own
end
`

/**
 * Counts. Further arguments: `undo` or empty, the number of changes, of each the index of its key, its length (0: open
 * calls), part and amount; then of each check the index, length, limit and amount. All checks are admitted, or none; with
 * `undo` the changes count only then. A change of open calls by 0 confirms them. Answers: `admitted` or `refused`, the
 * time, the place of the first limit that is exceeded (from 0) and when so much is free or empty; then of each check the
 * total and the time when its newest part leaves.
 */
export const COUNT = `${BEGIN}
local opened = {}

local function openWindow(key, length)
  local part = length / ${WINDOW_PARTS}
  local now = math.floor(time / part)
  local gone = lastGone(length)
  local found = redis.call('HMGET', key, 'total', 'oldest', 'newest', now)
  local window = { key = key, length = length, part = part, gone = gone, changed = {}, values = {},
    total = tonumber(found[1]) or 0, oldest = tonumber(found[2]), newest = tonumber(found[3]) }
  window.first, window.last = window.oldest, window.newest
  if window.newest and window.newest <= gone then
    redis.call('DEL', key)
    window.total, window.oldest, window.newest, window.first, window.last = 0, nil, nil, nil, nil
    return window
  end
  window.values[now] = found[4]
  if window.oldest and window.oldest <= gone then
    local names = {}
    for number = window.oldest, gone do names[#names + 1] = number end
    for _, value in ipairs(redis.call('HMGET', key, unpack(names))) do
      if value then window.total = window.total - tonumber(string.match(value, '^%S+')) end
    end
    redis.call('HDEL', key, unpack(names))
    window.oldest = gone + 1
    window.is_changed = true
  end
  return window
end

local function openCalls(key)
  local calls = { key = key, total = 0, own = 0 }
  local all = redis.call('HGETALL', key)
  for at = 1, #all, 2 do
    local count, till = string.match(all[at + 1], '^(%S+) (%S+)$')
    if all[at] == process then
      calls.own, calls.is_known = tonumber(count), true
      calls.total = calls.total + calls.own
    elseif tonumber(till) > time then calls.total = calls.total + tonumber(count)
    elseif tonumber(till) + ${SPARE_MS} < time then redis.call('HDEL', key, all[at])
    end
  end
  return calls
end

local function open(index, length)
  local found = opened[index]
  if not found then
    if length == 0 then found = openCalls(KEYS[index]) else found = openWindow(KEYS[index], length) end
    opened[index] = found
  end
  return found
end

-- Adds an amount to what this process has; returns by how much that changes.
local function change(counter, part, amount)
  if not counter.length then
    local before = counter.own
    counter.own = math.max(0, before + amount)
    counter.total = counter.total + counter.own - before
    counter.is_changed = true
    return counter.own - before
  end
  if part <= counter.gone then return 0 end
  local value = counter.values[part]
  if value == nil then value = redis.call('HGET', counter.key, part) end
  local sum, own, rest = 0, 0, ''
  if value then sum, own, rest = read(value) end
  local added = math.max(0, own + amount) - own
  counter.values[part] = written(sum + added, own + added, rest)
  counter.changed[part] = true
  counter.is_changed = true
  counter.total = counter.total + added
  counter.oldest = math.min(counter.oldest or part, part)
  counter.newest = math.max(counter.newest or part, part)
  return added
end

local function save(counter)
  if not counter.is_changed then return end
  if not counter.length then
    if counter.own == 0 then redis.call('HDEL', counter.key, process)
    else
      redis.call('HSET', counter.key, process, counter.own .. ' ' .. text(time + ${OPEN_CALLS_VALID_MS}))
      redis.call('PEXPIRE', counter.key, ${OPEN_CALLS_VALID_MS + SPARE_MS})
    end
    return
  end
  local fields = { 'total', math.max(0, counter.total) }
  if counter.oldest ~= counter.first or counter.newest ~= counter.last then
    fields = { 'oldest', counter.oldest, 'newest', counter.newest, 'total', math.max(0, counter.total) }
  end
  for part in pairs(counter.changed) do
    fields[#fields + 1] = part
    fields[#fields + 1] = counter.values[part]
  end
  redis.call('HSET', counter.key, unpack(fields))
  if counter.newest ~= counter.last then
    redis.call('PEXPIRE', counter.key, math.ceil(counter.length * (1 + 2 / ${WINDOW_PARTS})) + ${SPARE_MS})
  end
end

-- When so much has left the window.
local function freeAt(window, amount)
  local parts = {}
  local all = redis.call('HGETALL', window.key)
  for at = 1, #all, 2 do
    local number = tonumber(all[at])
    if number then parts[#parts + 1] = { number, tonumber(string.match(all[at + 1], '^%S+')) } end
  end
  table.sort(parts, function(one, other) return one[1] < other[1] end)
  local left = 0
  for _, part in ipairs(parts) do
    left = left + part[2]
    if left >= amount then return text((part[1] + 1) * window.part + window.length) end
  end
  return ''
end

local at = 7
local is_lost = false
local changes = {}
for _ = 1, tonumber(ARGV[6]) do
  local counter = open(tonumber(ARGV[at]), tonumber(ARGV[at + 1]))
  local part, amount = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  if not counter.length and amount == 0 and not counter.is_known then is_lost = true end
  changes[#changes + 1] = { counter, part, change(counter, part, amount) }
  at = at + 4
end

local blocked
local checks = {}
for first = at, #ARGV, 4 do
  local counter = open(tonumber(ARGV[first]), tonumber(ARGV[first + 1]))
  local limit, amount = tonumber(ARGV[first + 2]), tonumber(ARGV[first + 3])
  checks[#checks + 1] = { counter, amount }
  if not blocked and counter.total + amount > limit then blocked = { #checks - 1, counter, counter.total + amount - limit } end
end
if not blocked then
  for _, check in ipairs(checks) do
    local counter = check[1]
    if check[2] > 0 then change(counter, counter.part and math.floor(time / counter.part) or 0, check[2]) end
  end
elseif ARGV[5] == 'undo' then
  for _, done in ipairs(changes) do change(done[1], done[2], -done[3]) end
end
for _, counter in pairs(opened) do save(counter) end
if is_lost then return {'over'} end

local answer = { 'admitted', text(time), '', '' }
if blocked then
  answer[1], answer[3] = 'refused', tostring(blocked[1])
  if blocked[2].length then answer[4] = freeAt(blocked[2], blocked[3]) end
end
for _, check in ipairs(checks) do
  local counter = check[1]
  answer[#answer + 1] = tostring(counter.total)
  answer[#answer + 1] = counter.newest and (counter.newest + 1) * counter.part + counter.length or 0
end
return answer
`

/**
 * Replaces all that the process has counted. Further arguments, for each key after the first: its length (0: open calls),
 * the number of parts, and of each its number and amount.
 */
export const REPLACE = `${BEGIN}
local at = 5
for index = 2, #KEYS do
  local key, length, count = KEYS[index], tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  at = at + 2
  if length == 0 then
    redis.call('HDEL', key, process)
    if count > 0 and tonumber(ARGV[at + 1]) > 0 then
      redis.call('HSET', key, process, ARGV[at + 1] .. ' ' .. text(time + ${OPEN_CALLS_VALID_MS}))
      redis.call('PEXPIRE', key, ${OPEN_CALLS_VALID_MS + SPARE_MS})
    end
  else
    local gone = lastGone(length)
    local values = {}
    local all = redis.call('HGETALL', key)
    for place = 1, #all, 2 do
      local part = tonumber(all[place])
      if part and part > gone then
        local sum, own, rest = read(all[place + 1])
        if sum > own then values[part] = { sum - own, 0, rest } end
      end
    end
    for place = at, at + 2 * count - 2, 2 do
      local part, amount = tonumber(ARGV[place]), tonumber(ARGV[place + 1])
      if part > gone and amount > 0 then
        local others = values[part] or { 0, 0, '' }
        values[part] = { others[1] + amount, amount, others[3] }
      end
    end
    local total, oldest, newest, fields = 0, nil, nil, {}
    for part, value in pairs(values) do
      total = total + value[1]
      oldest, newest = math.min(oldest or part, part), math.max(newest or part, part)
      fields[#fields + 1] = part
      fields[#fields + 1] = written(value[1], value[2], value[3])
    end
    redis.call('DEL', key)
    if newest then
      redis.call('HSET', key, 'total', total, 'oldest', oldest, 'newest', newest, unpack(fields))
      redis.call('PEXPIRE', key, math.ceil(length * (1 + 2 / ${WINDOW_PARTS})) + ${SPARE_MS})
    end
  end
  at = at + 2 * count
end
return {'replaced', text(time)}
`
