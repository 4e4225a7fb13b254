-- What allocates in Lua: tables that grow, strings, closures, coroutines, objects with finalizers. Prints
-- sums that depend on all of it and on no address.
local sum = 0

local function tree(depth)
  if depth == 0 then return {} end
  return {tree(depth - 1), tree(depth - 1)}
end

local function count(node)
  local total = 1
  for _, child in ipairs(node) do total = total + count(child) end
  return total
end

for depth = 4, 13 do sum = sum + count(tree(depth)) end
print("trees", sum)

local words, bytes = {}, 0
for i = 1, 20000 do
  words[i] = ("word%d"):format(i * 7919 % 10007):rep(i % 5 + 1, "-")
  bytes = bytes + #words[i]
end
table.sort(words)
print("words", bytes, words[1], words[#words])
print("text", #table.concat(words, ","), (table.concat(words):gsub("9", "nine")):len())

local makers = {}
for i = 1, 5000 do
  local kept = i
  makers[i] = function(n) kept = kept + n; return kept end
end
local closed = 0
for i, make in ipairs(makers) do closed = closed + make(i) end
print("closures", closed)

local produced = 0
for i = 1, 500 do
  local producer = coroutine.wrap(function()
    for n = 1, 20 do coroutine.yield({n, tostring(n * i)}) end
  end)
  for _ = 1, 20 do
    local pair = producer()
    produced = produced + pair[1] * #pair[2]
  end
end
print("coroutines", produced)

local finalized = 0
for _ = 1, 3000 do
  setmetatable({}, {__gc = function() finalized = finalized + 1 end})
end
collectgarbage()
collectgarbage()
print("finalized", finalized)

local ok, message = pcall(function() local t = nil; return t.x end)
print("error", ok, message)
local weak = setmetatable({}, {__mode = "k"})
for i = 1, 1000 do weak[{}] = i end
collectgarbage()
print("weak", next(weak) == nil)
