//! A clock made of gears.
const std = @import("std");
const Spring = @import("spring.zig").Spring;

pub const max_gears: usize = 32;
var ticks: u64 = 0;
const Allocator = std.mem.Allocator;

/// A wheel with teeth.
pub const Gear = struct {
    teeth: u32,
    next: ?*Gear = null,

    const Self = @This();
    pub const smallest = 6;

    pub fn init(teeth: u32) Self {
        const checked = @max(teeth, smallest);
        return .{ .teeth = checked };
    }

    pub fn turn(self: *Self, by: i32) !void {
        if (self.next) |gear| try gear.turn(-by);
        std.debug.print("{d}\n", .{by});
    }
};

pub const Hand = enum(u8) {
    hour,
    minute,

    fn length(self: Hand) f32 {
        return switch (self) {
            .hour => 3.0,
            .minute => 5.0,
        };
    }
};

const Source = union(enum) { spring: Spring, weight: u32 };

const WindError = error{ Broken, Tight };

pub fn Stack(comptime T: type) type {
    return struct {
        items: []T,

        pub fn push(self: *@This(), item: T) void {
            self.items[0] = item;
        }
    };
}

extern "c" fn sleep(seconds: c_uint) c_uint;

test "a gear turns" {
    var gear = Gear.init(8);
    try gear.turn(1);
    try std.testing.expect(wound(&gear));
}
