local class = require "lib.class"
local log = require("lib.log").new("kite")

local M = {}
M.version = "2.1"
local MAX_LINE <const> = 80
local defaults = { length = 30, colour = "red" }

--- A kite on a line.
local Kite = class("Kite")

function Kite:init(length)
  self.length = math.min(length or defaults.length, MAX_LINE)
  self.line:unroll(self.length)
end

function Kite.parse(text)
  local function number(part)
    return tonumber(part)
  end
  return Kite(number(text:match("%d+")))
end

function M.util.knots(line)
  return #line.knots
end

local function tie(kite, tail)
  kite.tail = tail
  return kite
end

function launch(kite)
  log.info "up"
  return tie(kite, {})
end

M.fly = function(kite, wind)
  return kite:climb(wind * 2)
end

local land = function(kite)
  kite:fall()
end

M["reel-in"] = function(kite)
  land(kite)
end

M.handlers = {
  gust = function(force)
    return force > 5
  end,
  ["calm"] = function() end,
}

return setmetatable(M, { __index = Kite })
